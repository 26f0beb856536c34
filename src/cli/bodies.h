#pragma once
// Bodies of requests and answers in the output: verbatim. An operation gives a body as text in a
// member NAME_text; here it becomes NAME, JSON where it is JSON and a string where it is not.

#include <string>

#include "cli/output.h"

namespace aiq::cli {

// One line of JSON. Bodies keep every byte but the line ends between their tokens.
void print_with_bodies(Output& out, const Json& object);
// "name:" and the body for people, each value on a line of its own; nothing when there is none.
void print_body(Output& out, const Json& object, const std::string& name);

}  // namespace aiq::cli
