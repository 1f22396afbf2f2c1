# SPDX-License-Identifier: Apache-2.0
"""The Mustache specification's own cases, run by mustache-spec over its JSON files.

They are taken from shared/mustache-spec beside the checkout; where that is not, an older and
smaller edition comes out of Debian's r-cran-whisker, which is unpacked and not installed.
Lambdas are functions in the data: JSON has none.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

BESIDE = pathlib.Path(__file__).resolve().parents[2] / "shared/mustache-spec"
KNOWN = {"beside": 184, "whisker": 111}


def unpack_whisker(folder):
    """The package's folder of specifications, or None and why."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    # As root, for apt's own user cannot write here; own lists if the machine has none of it.
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    private = [*apt, "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}"]
    commands = [[*apt, "download", "r-cran-whisker"], [*private, "update"],
                [*private, "download", "r-cran-whisker"]]
    said = ""
    try:
        for command in commands:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
            said = said or done.stderr.strip()
            if packages := list(folder.glob("*.deb")):
                subprocess.run(["dpkg-deb", "-x", packages[0], folder / "x"], check=True, timeout=60)
                return folder / "x/usr/lib/R/site-library/whisker/specs", None
    except subprocess.TimeoutExpired as e:
        said = str(e)
    return None, said


@pytest.fixture(scope="module")
def specification(tmp_path_factory):
    """(where from, the files)"""
    if BESIDE.is_dir():
        where, folder = "beside", BESIDE
    else:
        where = "whisker"
        folder, why = unpack_whisker(tmp_path_factory.mktemp("whisker"))
        if not folder:
            pytest.skip(f"no specification beside the checkout, no r-cran-whisker: {why}")
    files = sorted(f for f in folder.glob("*.json") if "lambdas" not in f.name)
    return where, files


def run(program, *files):
    done = subprocess.run([program, *files], capture_output=True, text=True, timeout=300)
    passed, failed = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M).groups()
    return done, int(passed), int(failed)


@pytest.mark.limit(600)
def test_the_specification_passes_case_by_case(specification, build, record_property):
    where, files = specification
    sanitized = pathlib.Path(os.environ.get("ROOST_BUILD_SANITIZE", build))
    for program in (build / "mustache-spec", sanitized / "mustache-spec"):
        done, passed, failed = run(program, *files)
        assert done.returncode == 0 and failed == 0, done.stdout + done.stderr
        assert passed >= KNOWN[where], done.stdout
    record_property("told", f"Mustache specification ({where}): {passed} cases passed, "
                            f"{failed} failed, lambdas left out")


@pytest.mark.limit(600)
def test_a_case_that_fails_is_told(specification, build, tmp_path):
    where, files = specification
    spec = json.loads(next(f for f in files if f.name == "sections.json").read_text())
    spec["tests"][3]["expected"] += "?"
    spec["tests"][7]["template"] += "{{/x}}"
    changed = tmp_path / "sections.json"
    changed.write_text(json.dumps(spec))
    done, passed, failed = run(build / "mustache-spec", changed)
    assert done.returncode == 1
    assert (passed, failed) == (len(spec["tests"]) - 2, 2)
    assert f"FAIL {spec['tests'][3]['name']}" in done.stdout
    assert "but nothing is open" in done.stdout
