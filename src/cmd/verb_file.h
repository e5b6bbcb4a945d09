// SPDX-License-Identifier: Apache-2.0
// A verb that is data: a query or a D script in a folder (verbs/ of the package, and the user's
// own), which `clew NAME` runs. The comment that a file begins with says what it is; of its lines
// those that begin with one of these words and a colon are read, and the others are for people:
//
//   help        one line, for `clew --help`
//   needs       root, process: what there must be; of a variant, if it needs less
//   form        the format it is drawn in, unless another one is asked for: chart
//   every       how long its intervals are on a terminal: 1s
//   nothing     what is said when it has seen nothing
//   parameter   NAME KIND DEFAULT what it is; KIND is duration, number or text, or the values that
//               a text can have, as mutex|all. ${NAME} stands for its value, --NAME changes it. A
//               text stands between quotes; - is no default
//   when        program PATTERN, library PATTERN, format NAMES, given PARAMETER or several
//               processes: a variant, which is the verb where this holds
//   extension   functions in C that the query calls: the name of one that comes with Clew
//   demangled   the column whose values are names of types as the ABI of C++ writes them
//   otherwise   what is wrong where no variant is meant: the file has no text of its own
//
// NAME.clew or NAME.d is the verb, NAME.VARIANT.clew or NAME.VARIANT.d are its variants, which are
// tried in the order of their names. NAME.text.d and NAME.VARIANT.text.d are put behind a script,
// where its answer is a text: what it prints, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::cmd {

struct VerbParameter {
  // Code is what a script is given of its processes, as it is.
  enum class Kind : uint8_t { Duration, Number, Text, Code };
  std::string name;
  Kind kind = Kind::Text;
  std::string value;  // Its default; what a user says replaces it.
  std::string words;
  bool is_given = false;
  std::vector<std::string> choices{};  // Of a text; none: all texts are possible.
};

struct VerbCondition {
  enum class Kind : uint8_t { None, Program, Library, Format, Given, Several };
  Kind kind = Kind::None;
  std::string words;  // A pattern, or names with commas between them.
};

enum class VerbLanguage : uint8_t { Query, D };

// One file.
struct VerbText {
  std::string path;
  std::string variant;  // Empty: the verb itself.
  VerbLanguage language = VerbLanguage::Query;
  VerbCondition when{};
  std::optional<bool> needs_root{};  // Nothing: as the verb.
  std::string text{};                // All of it, ${NAME} as it is.
  std::string text_tail{};           // Where its answer is a text.
};

struct NamedVerb {
  std::string name;
  std::string help;
  std::string form;
  std::string every;
  std::string nothing;
  std::string otherwise;
  std::string extension;
  std::string demangled;
  bool needs_root = false;
  bool needs_process = false;
  std::vector<VerbParameter> parameters;
  std::vector<VerbText> texts;     // Variants first.
  std::optional<Error> problem{};  // It cannot be run, and may have no text.
};

struct Verbs {
  struct FolderProblem {
    std::string folder;
    Error error;
  };
  std::vector<NamedVerb> verbs;
  std::vector<FolderProblem> problems;  // Folders without verbs.
};

// The folders of a verb: that of the package, the user's own, and what a command line says.
std::vector<std::string> verb_folders(const std::vector<std::string>& more);

// Those in these folders, by name; a later folder goes before an earlier one. A file that cannot be
// read, or a line of a header that makes no sense, is the problem of that verb, with its place; a
// folder that is not there, or has too many, is one of the folder.
Verbs read_verbs(const std::vector<std::string>& folders);

// A text with the values in the place of their names. Errors: a value that its kind does not allow,
// or a name that is no parameter.
Expected<std::string> filled_text(const std::string& text, VerbLanguage language,
                                  const std::vector<VerbParameter>& parameters);

// Whether the parameter can have this value. InvalidQuery says which it can have.
Expected<void> check_choice(const VerbParameter& parameter, const std::string& value);

// How names of programs, libraries and formats are compared: * ? [a-z].
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace clew::cmd
