#!/bin/sh
# Takes one line from a file; exit code 42 requests another run immediately.
set -eu

ITEMS=5
REST_SECONDS=150
queue=$DROVER_STATE_DIR/queue
emptied=$DROVER_STATE_DIR/emptied_at
now=$(date +%s)

if [ ! -s "$queue" ]; then
    emptied_at=0
    if [ -s "$emptied" ]; then read -r emptied_at <"$emptied"; fi
    if [ $((now - emptied_at)) -lt "$REST_SECONDS" ]; then
        echo "nothing to do; new items in $((REST_SECONDS - now + emptied_at)) s"
        exit 0
    fi
    number=1
    while [ "$number" -le "$ITEMS" ]; do
        echo "item $number of $ITEMS"
        number=$((number + 1))
    done >"$queue"
    echo "filled the queue with $ITEMS items"
fi

read -r item <"$queue"
echo "working on $item"
sleep 1

# Write, then rename: if this run is stopped at any point, the queue is complete.
tail -n +2 "$queue" >"$queue.new"
mv "$queue.new" "$queue"
echo "done with $item"

if [ -s "$queue" ]; then
    exit 42
fi
echo "$now" >"$emptied"
echo "the queue is empty"
