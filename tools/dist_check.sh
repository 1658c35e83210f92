#!/usr/bin/env bash
# The packed tree works somewhere else, with nothing of this one: it grades up to the timing, an ordinary user can start
# it, and every library comes from the package or is the C library. usage: tools/dist_check.sh BIN_DIR PYTHON
set -eu
cd "$(dirname "$0")/.."
tools/dist.sh "$1"
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
tar -C "$dir" -xzf build/cuda-agent.tar.gz
mkdir "$dir/home"
as=()
if [ "$(id -u)" = 0 ]; then
    chown -R 65534:65534 "$dir"
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
run() { (cd / && env -i PATH=/usr/bin:/bin HOME="$dir/home" "${as[@]}" "$@"); }
for f in cuda-agent ca-runner libca_device.so libca_torch.so; do
    run ldd "$dir/cuda-agent/bin/$f" | awk -v own="$dir" '
        $2 == "=>" && index($3, own) != 1 && $3 !~ /\/(libc|libm|libpthread|libdl|librt|libresolv)\.so/ {print "from outside:", $0; bad = 1}
        END {exit bad}'
done
run "$dir/cuda-agent/bin/cuda-agent" --version
run "$dir/cuda-agent/bin/cuda-agent" help --format markdown | diff - "$dir/cuda-agent/share/cuda-agent/docs/cli.md"
chmod -R a-w "$dir/cuda-agent" # installed for everybody, written by nobody
CUDA_AGENT_HOME=$dir/ours "$dir/cuda-agent/bin/cuda-agent" verify "$dir/cuda-agent/share/cuda-agent/examples/candidates/cpu/linear_sum" \
    --target cpu --python "$2"
for f in $(sed -n 's/^ *{ "\(skills[^"]*\|include[^"]*\)".*/\1/p' src/workspace/workspace.c); do
    [ -e "$dir/cuda-agent/share/cuda-agent/$f" ] || { echo "not packed: $f"; exit 1; }
done
