# SPDX-License-Identifier: Apache-2.0
"""Cleans up after a pytest that could not: a program of its own, beside each session.

    janitor.py SESSION-ID FOLDER

Its standard input is a pipe from pytest. The pipe ends when pytest does, by whatever
signal; then every process with the session's mark is killed, the session's folder and its
control groups removed. In a good end nothing of either is left, and this does nothing. It lives in
its own session, so that Ctrl-C and a closed terminal do not reach it.
"""

import os
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lab import cgroups, process  # noqa: E402

if __name__ == "__main__":
    session, folder = sys.argv[1:]
    sys.stdin.buffer.read()
    process.kill_marked(session)
    # One that pytest was starting at its last moment may have got its mark just now.
    time.sleep(0.1)
    process.kill_marked(session)
    cgroups.remove(session)
    shutil.rmtree(folder, ignore_errors=True)
