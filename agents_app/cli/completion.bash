# Completes Drover's commands in bash. Try it in this shell:
#
#     source <(@PROGRAM@ completion bash)
#
# and to have it in every shell, put that line into ~/.bashrc, or keep the script:
#
#     @PROGRAM@ completion bash > ~/.local/share/bash-completion/completions/drover
#
# It works for drover, manage.py and for `python manage.py`. Run it again after an update of Drover.

_drover_table() {
    cat <<'DROVER_TABLE'
@TABLE@
DROVER_TABLE
}

# _drover_names KIND TENANT: the names of agents, schedules or tenants, one a line.
_drover_names() {
    PYTHONPATH=@ROOT@ @PYTHON@ -P -m scheduler_project.command --names "$1" "$2" 2>/dev/null
}

# Offers the lines of the input that begin with what is typed. Never by `compgen -W`, which would
# run a command written into a name.
_drover_offer() {
    local line
    while IFS= read -r line; do
        [[ $line == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
    done
}

# _drover_values WHAT CURRENT TENANT
_drover_values() {
    case $1 in
    =*) _drover_offer "$2" < <(tr ' ' '\n' <<<"${1#=}") ;;
    @files) compopt -o default ;;
    @*) _drover_offer "$2" < <(_drover_names "${1#@}" "$3") ;;
    esac
}

_drover() {
    local current=${COMP_WORDS[COMP_CWORD]} path='' tenant='' place=0 awaited='' start i
    COMPREPLY=()
    for ((start = 0; start < COMP_CWORD; start++)); do
        [[ ${COMP_WORDS[start]##*/} == @(drover|manage.py) ]] && break
    done
    if ((start == COMP_CWORD)); then
        compopt -o default # some other program of this Python
        return
    fi
    local table kind at word what rest
    table=$(_drover_table)
    for ((i = start + 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $awaited ]]; then
            [[ $awaited == @tenants ]] && tenant=$word
            awaited=''
        elif [[ $word == -* ]]; then
            while IFS='|' read -r kind at rest what _; do
                [[ $kind == O && $at == "$path" && $rest == "$word" ]] && awaited=$what
            done <<<"$table"
        elif grep -qF -- "V|$path|$word|" <<<"$table"; then
            path=${path:+$path }$word
        else
            ((++place))
        fi
    done
    if [[ -n $awaited ]]; then
        _drover_values "$awaited" "$current" "$tenant"
        return
    fi
    ((++place))
    while IFS='|' read -r kind at word what _; do
        [[ $at == "$path" ]] || continue
        case $kind in
        V) [[ $current != -* ]] && _drover_offer "$current" <<<"$word" ;;
        O) [[ $current == -* ]] && _drover_offer "$current" <<<"$word" ;;
        P) [[ $current != -* && ($word == '*' || $word == "$place") ]] &&
            _drover_values "$what" "$current" "$tenant" ;;
        esac
    done <<<"$table"
}

complete -F _drover drover manage.py
# A completion of python that is already registered stays.
for each in python python3; do
    complete -p "$each" >/dev/null 2>&1 || complete -F _drover -o default "$each"
done
unset each
