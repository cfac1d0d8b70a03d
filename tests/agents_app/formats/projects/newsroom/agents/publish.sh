#!/bin/sh
# The context of the run is on standard input.
grep -q '"event":"completed"' && echo "published by $DROVER_AGENT"
