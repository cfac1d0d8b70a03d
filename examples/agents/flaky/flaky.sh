#!/bin/sh
# Fails in turn with 1, 12 and 14, then succeeds once.
set -eu

count_file=$DROVER_STATE_DIR/count
count=0
if [ -s "$count_file" ]; then read -r count <"$count_file"; fi
echo $((count + 1)) >"$count_file"

echo "attempt $DROVER_ATTEMPT: asking a service that does not exist"
sleep 1
case $((count % 4)) in
    0) echo "it did not answer" >&2; exit 1 ;;
    1) echo "it says: too many requests" >&2; exit 12 ;;
    2) echo "it says: my database is down" >&2; exit 14 ;;
    *) echo "it answered" ;;
esac
