#!/bin/sh
# Finds the region in the prompt, waits for a second and returns one line.
set -eu

region=unknown
while IFS= read -r line || [ -n "$line" ]; do
    for word in $line; do
        case $word in north | south | west | east) region=$word ;; esac
    done
done
echo "surveying the $region"
sleep 1
drover return "the $region has ${#region} hills"
