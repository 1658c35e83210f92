#!/bin/sh
# Compile and verify the candidate in a work folder: one line of JSON.
# usage: check.sh --workdir DIR [--compile] [--full] [--note TEXT] [options of cuda-agent verify]
# SPDX-License-Identifier: Apache-2.0
here=$(CDPATH='' cd -P -- "$(dirname -- "$0")" && pwd) || exit 4
exec python3 "$here/ask.py" verify "$@"
