#!/bin/sh
# Three calls, one wait, one summary. The answers of the commands are JSON on one line.
set -eu

REGIONS="north south west"

field() { # field NAME <JSON: every value of that name, a line each; texts without quotes in them
    tr '{}' '\n\n' | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",]*\).*/\1/p"
}

ids=""
for region in $REGIONS; do
    id=$(drover call surveyor "$region" | field callId)
    echo "asked for the $region: call $id"
    ids="$ids $id"
done

drover status "waiting for $REGIONS" >/dev/null
# Unquoted: each id is a word of its own.
answer=$(drover wait $ids --timeout 90)

summary=$(echo "$answer" | field returnValue)
echo "$summary"
drover return "$summary" >/dev/null
