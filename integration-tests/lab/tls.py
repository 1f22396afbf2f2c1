# SPDX-License-Identifier: Apache-2.0
"""Certificates, by openssl; elliptic keys because they are made in no time."""

import dataclasses
import pathlib


@dataclasses.dataclass
class Certificate:
    cert: pathlib.Path
    key: pathlib.Path


class Authority:
    """A certificate authority of one lab."""

    def __init__(self, lab, name="ca"):
        self.lab, self.name = lab, name
        self.cert, self.key = lab.dir / f"{name}.crt", lab.dir / f"{name}.key"
        self._request(self.cert, self.key, "/O=roost-lab/CN=lab authority",
                      ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"])

    def issue(self, name, subject="/O=roost-lab", addresses=(), dns=(),
              usage="serverAuth,clientAuth"):
        """A certificate.

        By default without a CN: etcd's gateway refuses client certificates that have
        one as soon as authentication is on. By default for both ends of a connection:
        etcd's gateway dials its own port with the server's certificate.
        """
        made = Certificate(self.lab.dir / f"{name}.crt", self.lab.dir / f"{name}.key")
        names = [f"IP:{a}" for a in addresses] + [f"DNS:{d}" for d in dns]
        extensions = ["basicConstraints=critical,CA:FALSE", f"extendedKeyUsage={usage}"]
        if names:
            extensions.append("subjectAltName=" + ",".join(names))
        self._request(made.cert, made.key, subject, extensions,
                      "-CA", self.cert, "-CAkey", self.key)
        return made

    def _request(self, cert, key, subject, extensions, *more):
        # An own, empty configuration: the machine's openssl.cnf would add extensions.
        config = self.lab.dir / "openssl.cnf"
        config.write_text("[req]\ndistinguished_name=dn\n[dn]\n")
        added = [x for e in extensions for x in ("-addext", e)]
        self.lab.run(["openssl", "req", "-x509", "-config", config, "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2, "-subj", subject,
                      "-keyout", key, "-out", cert, *added, *more])
