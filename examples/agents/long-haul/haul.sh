#!/bin/sh
# Ten steps of two seconds, one line each; on TERM it prints its progress and exits.
set -eu

step=0
trap 'echo "stopped after step $step of 10"; exit 143' TERM INT

while [ "$step" -lt 10 ]; do
    # In the background and waited for, because a shell runs no trap while a command runs.
    sleep 2 &
    wait $!
    step=$((step + 1))
    echo "step $step of 10 done"
done
echo "arrived"
