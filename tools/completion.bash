# SPDX-License-Identifier: Apache-2.0
# Bash completion of the clew command: verbs, options, pids, and functions through `clew list`.

_clew() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local verb="" word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in run | list | explain | doctor | ps | detach) verb="$word" && break ;; esac
  done
  if [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W "run list explain doctor ps detach --help \
      --version" -- "$current")
    return
  fi
  case "$previous" in
    -p | --pid)
      mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' /proc/[0-9]* |
        cut -d/ -f3)" -- "$current")
      return ;;
    --name)
      mapfile -t COMPREPLY < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null |
        sort -u)" -- "$current")
      return ;;
    --for | --every)
      mapfile -t COMPREPLY < <(compgen -W "100ms 1s 5s 10s 1m" -- "$current")
      return ;;
  esac
  case "$verb" in
    run)
      mapfile -t COMPREPLY < <(compgen -f -W "-p -c --name --for --every --json --csv \
        --chart -o --spill --from --yes --allow-missing --follow --help" -- "$current") ;;
    list | explain)
      mapfile -t COMPREPLY < <(compgen -f -W "-p -c --name --json --help" -- "$current") ;;
    detach)
      mapfile -t COMPREPLY < <(compgen -W "$(clew ps --json 2>/dev/null |
        sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')" -- "$current") ;;
    *)
      mapfile -t COMPREPLY < <(compgen -W "--json --help" -- "$current") ;;
  esac
}
complete -o default -F _clew clew
