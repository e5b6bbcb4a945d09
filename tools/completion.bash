# SPDX-License-Identifier: Apache-2.0
# Bash completion of the clew command: verbs, options, pids, names and files. The lists of options
# are those of `clew VERB --help`; tools/check_completion compares them.

_clew_options() {
  local processes="-p --pid -n --name --newest --container --unit --cgroup --user --command-line"
  local request="$processes -c --command --vocabulary --ext --no-branch-guards --fuel \
    --allow-missing -y --yes -f --follow --allow-late-uprobe-danger --uprobes --no-uprobes --copies \
    --plan"
  local formats="--format --json --csv --chart --stream --sqlite --folded --svg --metrics"
  local output="--for --every --max-overhead --idle $formats \
    -o --output --spill --from --graph --graph-of --on --sign -q --quiet -v --verbose"
  local named="$processes -c --command -f --follow --for --every $formats -o --output --vocabulary \
    --verbs --show -y --yes -q --quiet -v --verbose"
  local cluster="--cluster --tenant --ca --certificate --key --credentials --replicas"
  case "$1" in
    run) echo "$request $output $cluster --wait --stand --otlp --otlp-header --prometheus" ;;
    dtrace) echo "-s -n -f -m -P -i -c -p -w -Z -q -F -o -x -b -l -h -G -v -e -S -V -C -D -U -I -H -L --ext \
      --fuel --format --json --max-overhead --idle --no-destructive" ;;
    record) echo "-p --pid --policy --group -o --output --each --guards --no-cache --no-follow -q --quiet -v --verbose" ;;
    snap) echo "--group -o --output --json -v --verbose" ;;
    show) echo "--last --thread --source --bundle --gdb --json --together --across -i --interactive -v --verbose" ;;
    list) echo "$processes --file --types --sites --json --fields --values --tracepoints --kernel \
      --usdt --processes --vocabulary -v --verbose" ;;
    explain) echo "$request --programs --code --run --for --json -v --verbose" ;;
    doctor) echo "-p --pid --stop --cluster --tenant --ca --certificate --key --credentials --cause --vocabulary --id --for --json -v --verbose" ;;
    ui) echo "--port --no-open --allow-commands --page -v --verbose" ;;
    node) echo "$cluster --name --label --spill --roles -q --quiet -v --verbose" ;;
    root) echo "$cluster --store --keep --keep-bytes --otlp --otlp-header --prometheus --name --roles --lease -q --quiet -v --verbose" ;;
    key) echo "--show -v --verbose" ;;
    results) echo "$cluster --store --interval --end --sign $formats -o --output -v --verbose" ;;
    cluster) echo "try -v --verbose" ;;
    examples) echo "--show --json -v --verbose" ;;
    ps) echo "--json -v --verbose" ;;
    detach) echo "--force -v --verbose" ;;
    bug-report) echo "-o --output -v --verbose" ;;
    log) echo "--since --pid --user --last --json -v --verbose" ;;
    cpu | net) echo "$named --take" ;;
    exec) echo "$named" ;;
    files) echo "$named --path --take" ;;
    locks) echo "$named --kind --take" ;;
    leaks) echo "$named --age --take --as" ;;
    offcpu) echo "$named --least --take" ;;
    slow) echo "$named --above --calls --as" ;;
    sql) echo "$named --like --take --as" ;;
    syscalls | top) echo "$named --calls --take" ;;
    throws) echo "$named --take" ;;
  esac
  echo "-h --help"
}

# The values of an option; fails when the word before is none that takes one.
_clew_value() {
  case "$1" in
    -p | --pid)
      mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' /proc/[0-9]* | cut -d/ -f3)" -- "$2") ;;
    -n | --name | --newest)
      mapfile -t COMPREPLY < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u)" \
        -- "$2") ;;
    --user) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
    --unit) mapfile -t COMPREPLY < <(compgen -W "$(cut -d: -f3 /proc/[0-9]*/cgroup 2>/dev/null |
      sed -n 's|.*/\([^/]*\.service\).*|\1|p' | sort -u)" -- "$2") ;;
    --cgroup) mapfile -t COMPREPLY < <(compgen -W "$(cut -d: -f3 /proc/[0-9]*/cgroup 2>/dev/null |
      sort -u)" -- "$2") ;;
    -c | --command) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
    --format) mapfile -t COMPREPLY < <(compgen -W "text json csv chart stream sqlite folded svg metrics" -- "$2") ;;
    --for | --every | --keep) mapfile -t COMPREPLY < <(compgen -W "100ms 1s 5s 10s 1m" -- "$2") ;;
    --plan) mapfile -t COMPREPLY < <(compgen -W "emit in-place" -- "$2") ;;
    --above | --least) mapfile -t COMPREPLY < <(compgen -W "1ms 10ms 100ms 1s" -- "$2") ;;
    --kind) mapfile -t COMPREPLY < <(compgen -W "mutex all" -- "$2") ;;
    --as) mapfile -t COMPREPLY < <(compgen -W "mariadb postgresql redis sqlite" -- "$2") ;;
    --graph-of) mapfile -t COMPREPLY < <(compgen -W "slowest first last" -- "$2") ;;
    -o | --output | --spill | --from | --graph | --file | --vocabulary | --verbs | --ext | --source | --policy | --bundle | --gdb | \
      --ca | --certificate | --key | --credentials | --store | --sign | --roles | --page)
      mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    *) return 1 ;;
  esac
}

_clew() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local verb="" word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in run | dtrace | record | snap | show | list | explain | doctor | ui | node | root | key | results | cluster | examples | ps | detach | log | bug-report | \
      cpu | exec | files | leaks | locks | net | offcpu | slow | sql | syscalls | throws | top) verb="$word" && break ;; esac
  done
  if [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W "run dtrace record snap show list explain doctor ui node root key results cluster examples ps detach log bug-report \
      cpu exec files leaks locks net offcpu slow sql syscalls throws top --help --version" -- "$current")
    return
  fi
  _clew_value "$previous" "$current" && return
  local words
  words="$(_clew_options "$verb")"
  if [[ ($verb == detach || $verb == snap) && $current != -* ]]; then
    words="$(clew ps --json 2>/dev/null | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')"
  fi
  local files=()
  case "$verb" in run | explain | dtrace | record | show | key) files=(-f) ;; esac
  mapfile -t COMPREPLY < <(compgen "${files[@]}" -W "$words" -- "$current")
}
complete -o default -F _clew clew
