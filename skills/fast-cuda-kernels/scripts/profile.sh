#!/bin/sh
# Verify and time the candidate in a work folder against all of PyTorch's ways: one line of JSON.
# usage: profile.sh --workdir DIR [--full] [--note TEXT] [options of cuda-agent profile]
# SPDX-License-Identifier: Apache-2.0
here=$(CDPATH='' cd -P -- "$(dirname -- "$0")" && pwd) || exit 4
exec python3 "$here/ask.py" profile "$@"
