# SPDX-License-Identifier: Apache-2.0
"""The real decisions of agents and controllers on a clock of their own: simulation/simulation.h.

`simulate` judges itself: no address has two holders, nothing is leaked, everybody serves in the
end. A seed that fails is printed with its shortened story.
"""

import pathlib
import subprocess

import pytest

# They compute all the time: one after the other, beside tests that wait.
pytestmark = pytest.mark.xdist_group("processor")
HERE = pathlib.Path(__file__).parent
# Beside others on two cores some 7 million steps; the same seeds in every run, as far as it gets.
# Once all machines speak to etcd, once some have their blocks from lease servers.
LIVES = {"etcd": ([], 35), "leases": (["--leases"], 25)}


def known_seeds(lives):
    """The numbers in simulation/seeds: those of machines over leases say so."""
    lines = (HERE / "simulation/seeds").read_text().splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return [w[0] for w in words if (w[1] == "leases:") == (lives == "leases")]


def simulate(build, *args):
    """Its last line; fails with its story."""
    done = subprocess.run([build / "simulate", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("lives", LIVES)
def test_seeds_that_failed_once_do_not_fail_again(build, lives):
    seeds = known_seeds(lives)
    assert simulate(build, *LIVES[lives][0], "--seeds", ",".join(seeds)).startswith(
        f"{len(seeds)} seeds, ")


@pytest.mark.limit(300)
@pytest.mark.slow(35)
@pytest.mark.parametrize("lives", LIVES)
def test_no_address_twice_in_any_of_many_lives(build, lives):
    flags, seconds = LIVES[lives]
    assert simulate(build, *flags, "--from", "1", "--seconds", str(seconds)).endswith(": 0 failed")


def test_a_run_follows_from_its_seed_alone(build):
    once = simulate(build, "--seeds", "11,7")
    assert once.split(" s:")[0].rsplit(",", 1)[0] == \
        simulate(build, "--seeds", "7,11").split(" s:")[0].rsplit(",", 1)[0]


def test_programs_of_the_simulation_have_no_memory_errors(sanitized):
    for flags, _ in LIVES.values():
        assert simulate(sanitized, *flags, "--from", "1", "--seconds", "4").endswith(": 0 failed")
