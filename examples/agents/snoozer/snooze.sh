#!/bin/sh
# The message of the schedule is part of the prompt: "wake up, N left".
set -eu

left=3
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
        *"wake up, "[0-9]" left"*) left=${line##*wake up, } && left=${left%% left*} ;;
    esac
done

if [ "$left" -eq 0 ]; then
    echo "rested enough"
    exit 0
fi
echo "snoozing, $left left"
echo "/schedule in 5 seconds: wake up, $((left - 1)) left"
