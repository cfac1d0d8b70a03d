#!/bin/sh
# Prints one line. What a run knows about itself is in its environment.
set -eu

echo "alive at $(date -u +%H:%M:%S) UTC: $DROVER_AGENT, run $DROVER_RUN_ID, trigger $DROVER_TRIGGER"
