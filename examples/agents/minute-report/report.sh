#!/bin/sh
# Reads the prompt as any agent does, from standard input, and reports on this machine.
set -eu

words=$(wc -w | tr -d ' ')
echo "asked with a prompt of $words words (also in $DROVER_PROMPT_FILE)"

if [ -r /proc/loadavg ]; then
    read -r one five fifteen rest </proc/loadavg
    echo "load: $one (1 min), $five (5 min), $fifteen (15 min)"
else
    echo "load: $(uptime | sed 's/.*load average[s]*: //')"
fi

if [ -r /proc/meminfo ]; then
    while read -r name kib unit; do
        case $name in
            MemTotal:) total=$kib ;;
            MemAvailable:) echo "memory: $((kib / 1024)) MiB of $((total / 1024)) MiB available" ;;
        esac
    done </proc/meminfo
fi

df -Pk . | {
    read -r header
    read -r device size used available percent mount
    echo "disk: $((available / 1024)) MiB available on $mount ($percent used)"
}
