// aiq completion, and aiq __complete, which its scripts call

#include "cli/commands.h"
#include "cli/completion_scripts.h"
#include "cli/known_values.h"
#include "cli/text.h"

namespace aiq::cli {

void add_completion(Command root, Session& session) {
  const auto shell = std::make_shared<Text>();
  root.add("completion", "print a script that completes commands, options and values")
      .operand("SHELL", *shell, "bash, zsh or fish", ValueKind::shell)
      .remark("bash: source <(aiq completion bash)")
      .remark("zsh: source <(aiq completion zsh), after compinit")
      .remark("fish: aiq completion fish > ~/.config/fish/completions/aiq.fish")
      .run([&session, shell] {
        const std::string script(completion_script(**shell));
        if (session.out.json()) {
          session.out.object({{"shell", **shell}, {"script", script}});
        } else {
          session.out.text(script);
        }
        return Exit::ok;
      });
}

void print_candidates(Output& out, const Command::Node& root,
                      const std::vector<std::string>& words) {
  const Completion found = complete(root, words, known_values);
  if (found.files) out.line("\tfiles");
  if (found.no_space) out.line("\tnospace");
  for (const Candidate& candidate : found.candidates)
    out.line(candidate.word + "\t" + cut(candidate.about, 60));
}

}  // namespace aiq::cli
