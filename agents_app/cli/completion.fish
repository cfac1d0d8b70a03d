# Completes Drover's commands in fish. Try it in this shell:
#
#     @PROGRAM@ completion fish | source
#
# and to have it in every shell, keep the script:
#
#     @PROGRAM@ completion fish > ~/.config/fish/completions/drover.fish
#
# Run it again after an update of Drover.

function __drover_table
    echo '@TABLE@'
end

# __drover_names KIND TENANT: the names of agents, schedules or tenants, one a line.
function __drover_names
    PYTHONPATH=@ROOT@ @PYTHON@ -P -m scheduler_project.command --names $argv 2>/dev/null
end

# __drover_values WHAT TENANT
function __drover_values
    switch $argv[1]
        case '=*'
            string split ' ' -- (string sub -s 2 -- $argv[1])
        case @files
            __fish_complete_path (commandline -ct)
        case '@*'
            __drover_names (string sub -s 2 -- $argv[1]) "$argv[2]"
    end
end

# __drover_offers CURRENT WORD...: what may follow the words, a line each, with its description.
function __drover_offers
    set -l current $argv[1]
    set -l where ''
    set -l tenant ''
    set -l awaited ''
    set -l place 0
    set -l table (__drover_table)
    for word in $argv[2..]
        if test -n "$awaited"
            test "$awaited" = @tenants; and set tenant $word
            set awaited ''
        else if string match -q -- '-*' $word
            set -l fields (string match -- "O|$where|$word|*" $table | string split '|')
            set awaited "$fields[4]"
        else if string match -q -- "V|$where|$word|*" $table
            set where (string trim -- "$where $word")
        else
            set place (math $place + 1)
        end
    end
    if test -n "$awaited"
        __drover_values $awaited "$tenant"
        return
    end
    set place (math $place + 1)
    for line in $table
        set -l fields (string split '|' -- $line)
        test "$fields[2]" = "$where"; or continue
        switch $fields[1]
            case V
                string match -q -- '-*' "$current"; or printf '%s\t%s\n' $fields[3] "$fields[4]"
            case O
                string match -q -- '-*' "$current"; and printf '%s\t%s\n' $fields[3] "$fields[5]"
            case P
                if not string match -q -- '-*' "$current"
                    if contains -- "$fields[3]" '*' $place
                        __drover_values "$fields[4]" "$tenant"
                    end
                end
        end
    end
end

complete -c drover -f -a '(set -l words (commandline -opc); __drover_offers (commandline -ct) $words[2..])'
