#include "cli/completion_scripts.h"

#include "core/base/check.h"

namespace aiq::cli {
namespace {

// The protocol of `aiq __complete WORD...`: a line "WORD<tab>DESCRIPTION" per candidate. A line
// without a word says something about the others: "files" or "nospace".

constexpr std::string_view kBash =
    R"sh(# Completion of aiq for bash. In ~/.bashrc: source <(aiq completion bash)
_aiq() {
  local line=${COMP_LINE:0:COMP_POINT} word head answer i
  local -a words=()
  # bash also breaks words at "=" and ":", aiq does not: join what no blank parts.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:blank:]]* ]]; then
      line=${line#"${line%%[![:blank:]]*}"}
      words+=("")
    fi
    ((i < COMP_CWORD)) || word=$line
    words[-1]+=$word
    line=${line:${#word}}
  done
  word=${words[-1]}
  # What stands before the piece that bash replaces.
  head=${word%"${word##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r answer; do
    case $answer in
      $'\tfiles')
        compopt -o filenames 2>/dev/null
        while IFS= read -r answer; do
          COMPREPLY+=("$answer")
        done < <(compgen -f -- "${word#"$head"}")
        ;;
      $'\tnospace') compopt -o nospace 2>/dev/null ;;
      *)
        answer=${answer%%$'\t'*}
        COMPREPLY+=("${answer#"$head"}")
        ;;
    esac
  done < <("${words[0]/#\~\//$HOME/}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _aiq aiq
)sh";

constexpr std::string_view kZsh = R"sh(#compdef aiq
# Completion of aiq for zsh. As _aiq in a folder of $fpath, or in ~/.zshrc after compinit:
# source <(aiq completion zsh)
_aiq() {
  local answer files=0
  local -a found space
  for answer in "${(@f)$("${(Q)words[1]/#\~\//$HOME/}" __complete \
      "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $answer in
      '') ;;
      $'\tfiles') files=1 ;;
      $'\tnospace') space=(-S '') ;;
      *) found+=("${${answer%%$'\t'*}//:/\\:}:${answer#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe -V -t aiq aiq found "${space[@]}"
  if (( files )); then
    compset -P '--*='
    _files
  fi
}
if [[ $funcstack[1] == _aiq ]]; then
  _aiq "$@"
else
  compdef _aiq aiq
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# Completion of aiq for fish: aiq completion fish > ~/.config/fish/completions/aiq.fish
function __aiq_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    for answer in (command $program __complete $words[2..-1] "$typed" 2>/dev/null)
        switch $answer
            case \tfiles
                __fish_complete_path (string replace -r -- '^--[^=]*=' '' "$typed")
            case \tnospace
            case '*'
                printf '%s\n' $answer
        end
    end
end
complete -c aiq -f -k -a '(__aiq_complete)'
)sh";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  AIQ_CHECK(shell == "fish");
  return kFish;
}

}  // namespace aiq::cli
