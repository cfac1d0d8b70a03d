#!/bin/sh
# Finds the region in the prompt, thinks for a second and returns a line.
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
