# SPDX-License-Identifier: Apache-2.0
"""What templates/ render is accepted by every version of BIRD that is to run it."""
import pathlib
import subprocess

CASES = sorted((pathlib.Path(__file__).resolve().parent.parent / "templates/cases").glob("*.expect"))


def test_every_bird_accepts_every_case(bird_program):
    assert len(CASES) >= 16
    version = subprocess.run([bird_program, "--version"], capture_output=True, text=True)
    said = (version.stdout + version.stderr).split()[-1]
    major, minor = (int(n) for n in said.split(".")[:2])
    for case in CASES:
        if case.stem.endswith("-2.17") and (major, minor) < (2, 17):
            continue
        done = subprocess.run([bird_program, "-p", "-c", case], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"BIRD {said}, {case.name}: {done.stderr}"
        # From 2.17 on a password without its option is taken with a warning.
        known = "Missing authentication option, assuming MD5"
        strange = [line for line in done.stderr.splitlines() if known not in line]
        assert not strange, f"BIRD {said}, {case.name}: {strange}"
