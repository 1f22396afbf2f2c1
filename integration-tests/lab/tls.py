# SPDX-License-Identifier: Apache-2.0
"""Certificates, by openssl; elliptic keys because they are made in no time."""

import dataclasses
import pathlib
import re


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
                      ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"])

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

    def expire(self, made, end="20200102000000Z"):
        """The certificate anew with the same key and names, but valid until then only."""
        subject = self.lab.run(["openssl", "x509", "-in", made.cert, "-noout", "-subject",
                                "-nameopt", "compat"]).stdout.split("=", 1)[1].strip()
        extensions = self.lab.run(["openssl", "x509", "-in", made.cert, "-noout", "-ext",
                                   "subjectAltName"], check=False).stdout
        names = ",".join(re.findall(r"(?:DNS|IP Address):[^,\s]+", extensions))
        names = names.replace("IP Address", "IP")
        folder = self.lab.dir / "expired"
        folder.mkdir(exist_ok=True)
        (folder / "index").write_text("")
        config, request = folder / "openssl.cnf", folder / "request"
        config.write_text(
            "[req]\ndistinguished_name=dn\n[dn]\n[ca]\ndefault_ca=lab\n"
            f"[lab]\ndatabase={folder}/index\nnew_certs_dir={folder}\nrand_serial=yes\n"
            "default_md=sha256\npolicy=any\nx509_extensions=ext\n"
            "[any]\norganizationName=optional\ncommonName=optional\n"
            "[ext]\nextendedKeyUsage=serverAuth,clientAuth\n"
            + (f"subjectAltName={names}\n" if names else ""))
        self.lab.run(["openssl", "req", "-new", "-config", config, "-key", made.key, "-subj",
                      subject, "-out", request])
        self.lab.run(["openssl", "ca", "-batch", "-notext", "-config", config, "-cert", self.cert,
                      "-keyfile", self.key, "-startdate", "20200101000000Z", "-enddate", end,
                      "-in", request, "-out", made.cert])

    def revoke(self, *certificates, name="revoked"):
        """The list of what the authority takes back: a file."""
        folder = self.lab.dir / f"crl-{self.name}"
        folder.mkdir(exist_ok=True)
        for file, text in (("index", ""), ("number", "01\n")):
            if not (folder / file).exists():
                (folder / file).write_text(text)
        config, crl = folder / "openssl.cnf", self.lab.dir / f"{name}.crl"
        config.write_text(f"[ca]\ndefault_ca=lab\n[lab]\ndatabase={folder}/index\n"
                          f"crlnumber={folder}/number\ndefault_md=sha256\n"
                          "default_crl_days=30\n")
        ca = ["openssl", "ca", "-config", config, "-cert", self.cert, "-keyfile", self.key]
        for made in certificates:
            self.lab.run([*ca, "-revoke", made.cert])
        self.lab.run([*ca, "-gencrl", "-out", crl])
        return crl

    def _request(self, cert, key, subject, extensions, *more):
        # An own, empty configuration: the machine's openssl.cnf would add extensions.
        config = self.lab.dir / "openssl.cnf"
        config.write_text("[req]\ndistinguished_name=dn\n[dn]\n")
        added = [x for e in extensions for x in ("-addext", e)]
        self.lab.run(["openssl", "req", "-x509", "-config", config, "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:prime256v1", "-nodes", "-days", 30, "-subj", subject,
                      "-keyout", key, "-out", cert, *added, *more])
