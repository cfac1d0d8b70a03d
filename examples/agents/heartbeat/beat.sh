#!/bin/sh
# Prints one line. The environment of a run contains its agent, its id and its trigger.
set -eu

echo "alive at $(date -u +%H:%M:%S) UTC: $DROVER_AGENT, run $DROVER_RUN_ID, trigger $DROVER_TRIGGER"
