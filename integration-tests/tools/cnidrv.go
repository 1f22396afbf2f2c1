// SPDX-License-Identifier: Apache-2.0

// cnidrv drives CNI plugins through libcni, the library that the container runtimes use.
//
//	cnidrv VERB FILE CONTAINER NETNS INTERFACE [CAPABILITIES]
//
// VERB is add, check, del or validate; FILE a network configuration list, or a single plugin's
// configuration if its name ends with .conf; CAPABILITIES a JSON object. CNI_PATH and CNI_ARGS
// are taken from the environment, and CACHE, the folder for results.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// As the runtimes do: a single configuration is a list of one.
func load(file string) (*libcni.NetworkConfigList, error) {
	if !strings.HasSuffix(file, ".conf") {
		return libcni.ConfListFromFile(file)
	}
	conf, err := libcni.ConfFromFile(file)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf)
}

func attachment() (*libcni.RuntimeConf, error) {
	rt := &libcni.RuntimeConf{ContainerID: os.Args[3], NetNS: os.Args[4], IfName: os.Args[5]}
	for _, pair := range strings.Split(os.Getenv("CNI_ARGS"), ";") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			rt.Args = append(rt.Args, [2]string{key, value})
		}
	}
	if len(os.Args) > 6 {
		return rt, json.Unmarshal([]byte(os.Args[6]), &rt.CapabilityArgs)
	}
	return rt, nil
}

func run(verb, file string) error {
	list, err := load(file)
	if err != nil {
		return err
	}
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(os.Getenv("CNI_PATH")),
		os.Getenv("CACHE"), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if verb == "validate" {
		_, err := cni.ValidateNetworkList(ctx, list)
		return err
	}
	rt, err := attachment()
	if err != nil {
		return err
	}
	switch verb {
	case "add":
		result, err := cni.AddNetworkList(ctx, list, rt)
		if err != nil {
			return err
		}
		return result.Print()
	case "check":
		return cni.CheckNetworkList(ctx, list, rt)
	case "del":
		return cni.DelNetworkList(ctx, list, rt)
	}
	return fmt.Errorf("unknown verb %s", verb)
}

func main() {
	if len(os.Args) < 3 || (os.Args[1] != "validate" && len(os.Args) < 6) {
		fmt.Fprintln(os.Stderr, "usage: cnidrv VERB FILE CONTAINER NETNS INTERFACE [CAPABILITIES]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
