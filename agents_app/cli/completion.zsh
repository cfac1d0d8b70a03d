#compdef drover manage.py
# Completes Drover's commands in zsh. Try it in this shell, after `autoload -U compinit; compinit`:
#
#     source <(@PROGRAM@ completion zsh)
#
# and to have it in every shell, keep the script in a directory of your $fpath:
#
#     @PROGRAM@ completion zsh > ~/.zfunc/_drover
#
# Run it again after an update of Drover.

_drover_table() {
    cat <<'DROVER_TABLE'
@TABLE@
DROVER_TABLE
}

# _drover_names KIND TENANT: the names of agents, schedules or tenants, one a line.
_drover_names() {
    PYTHONPATH=@ROOT@ @PYTHON@ -P -m scheduler_project.command --names "$1" "$2" 2>/dev/null
}

# _drover_values WHAT TENANT
_drover_values() {
    local -a found
    case $1 in
    \=*) found=(${(s: :)1#=}) ;;
    @files) _files; return ;;
    @*) found=("${(@f)$(_drover_names "${1#@}" "$2")}") ;;
    esac
    compadd -- ${found:#}
}

_drover() {
    local where='' tenant='' awaited='' line word what help
    local -i place=0 i
    local -a table fields verbs options
    table=("${(@f)$(_drover_table)}")
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ -n $awaited ]]; then
            [[ $awaited == @tenants ]] && tenant=$word
            awaited=''
        elif [[ $word == -* ]]; then
            # Quoted, so that the bars are bars and no choice between patterns.
            line=${(M)table:#"O|$where|$word|"*}
            fields=("${(@s:|:)line}")
            awaited=${fields[4]}
        elif [[ -n ${(M)table:#"V|$where|$word|"*} ]]; then
            where=${where:+$where }$word
        else
            ((++place))
        fi
    done
    if [[ -n $awaited ]]; then
        _drover_values "$awaited" "$tenant"
        return
    fi
    ((++place))
    for line in $table; do
        fields=("${(@s:|:)line}")
        [[ $fields[2] == "$where" ]] || continue
        case $fields[1] in
        V) verbs+=("${fields[3]//:/\\:}:$fields[4]") ;;
        O) options+=("${fields[3]}:$fields[5]") ;;
        P) [[ $PREFIX != -* && ($fields[3] == '*' || $fields[3] == $place) ]] &&
            _drover_values "$fields[4]" "$tenant" ;;
        esac
    done
    (($#verbs)) && [[ $PREFIX != -* ]] && _describe -t verbs verb verbs
    [[ $PREFIX == -* ]] && _describe -t options option options
    return 0
}

if [[ $funcstack[1] == _drover ]]; then
    _drover "$@"
else
    compdef _drover drover manage.py
fi
