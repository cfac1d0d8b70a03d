#!/bin/sh
# Locks the table for three seconds; waits if the other agent holds the lock.
set -eu

hand=$1
table=table://workshop

if drover lock "$table" --ttl 30; then
    echo "the $hand hand has the table"
else
    # Exit code 1: another run holds the lock. Any other code is an error, so waiting does not help.
    [ $? -eq 1 ] || exit 14
    echo "the $hand hand waits for the table"
    drover lock "$table" --ttl 30 --wait 20
    echo "the $hand hand has the table at last"
fi
sleep 3
drover unlock "$table"
echo "the $hand hand is done"
