// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/script_compiler.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/dtrace/libraries.h"
#include "engine/dtrace/providers.h"
#include "engine/dtrace/read_text.h"
#include "engine/extensions.h"
#include "query/d/explain.h"
#include "query/d/library.h"
#include "query/d/parse.h"
#include "query/d/preprocess.h"

namespace clew::engine {

using query::d::CompileError;
using query::d::CompileOptions;
using query::d::Program;

namespace {

// Appends `from` to `into`, as if its text followed.
void append(Program&& from, Program& into) {
  const auto shift = [&](Program::Item item) {
    switch (item) {
      case Program::Item::Clause:
        return into.clauses.size();
      case Program::Item::Variable:
        return into.variables.size();
      case Program::Item::Inline:
        return into.inlines.size();
      case Program::Item::Translator:
        return into.translators.size();
      case Program::Item::Option:
        return into.options.size();
    }
    return size_t{0};
  };
  for (const auto& [item, index] : from.order) {
    into.order.emplace_back(item, static_cast<uint32_t>(index + shift(item)));
  }
  const auto move_all = [](auto& source, auto& destination) {
    std::move(source.begin(), source.end(), std::back_inserter(destination));
  };
  move_all(from.clauses, into.clauses);
  move_all(from.variables, into.variables);
  move_all(from.inlines, into.inlines);
  move_all(from.translators, into.translators);
  move_all(from.options, into.options);
  move_all(from.attributes, into.attributes);
}

Expected<std::string> content_of(const DtraceProgram& program) {
  if (program.content) return *program.content;
  return read_text(program.text == "-" ? "/dev/stdin" : program.text);
}

std::string_view text_of(query::d::Region region) {
  switch (region) {
    case query::d::Region::None:
      return "";
    case query::d::Region::Predicate:
      return "in predicate: ";
    case query::d::Region::Actions:
      return "in action list: ";
  }
  return "";
}

class ScriptCompiler {
 public:
  ScriptCompiler(const DtraceRequest& request, kernel::Catalogue& catalogue,
                 query::d::TypeProvider* types, pid_t target)
      : request_(request), catalogue_(catalogue), probes_(catalogue), target_(target) {
    types_.set_provider(types);
  }

  Expected<CompiledScript> compile();
  Expected<Providers> read_providers();

 private:
  Expected<void> load_extensions();
  Expected<void> take_text(const DtraceProgram& program);
  Expected<void> add(const DtraceProgram& program);
  [[nodiscard]] bool has_option(std::string_view name) const;
  [[nodiscard]] Expected<std::string> preprocessed(const std::string& text) const;
  Expected<void> add_definitions(const std::string& text);
  Expected<std::vector<DLibrary>> user_libraries();
  [[nodiscard]] bool is_there(std::string_view kind, std::string_view name);
  Expected<void> check(bool is_last);
  Expected<void> enable();
  void note_process(const query::d::ProbeDescription& description, const kernel::Probe& probe);
  [[nodiscard]] Error error_of(const CompileError& error) const;
  [[nodiscard]] std::string drawing_of(const CompileError& error) const;
  [[nodiscard]] CompileOptions options_of(const DtraceProgram& program);
  void add_command_line_options();

  const DtraceRequest& request_;
  kernel::Catalogue& catalogue_;
  CatalogueProbes probes_;
  pid_t target_;
  query::d::TypeTable types_;
  Program program_;
  CompiledScript compiled_;
  CompileOptions options_;
  std::optional<Extensions> extensions_;
  std::vector<size_t> clause_ends_;     // By program.
  std::vector<std::string> libraries_;  // Paths of those of -L.
  std::string text_;                    // Of the last program, as it is parsed.
};

// The place, below the message.
std::string ScriptCompiler::drawing_of(const CompileError& error) const {
  const std::string lines = query::d::explain(text_, error);
  return lines.empty() ? "" : "\n" + lines.substr(0, lines.size() - 1);
}

Error ScriptCompiler::error_of(const CompileError& error) const {
  const CompiledProgram& program = compiled_.programs.back();
  const bool is_tagged = error.is_tagged || has_option("errtags");
  const std::string tag = is_tagged ? fmt::format("[{}] ", error.tag) : "";
  const std::string drawing = drawing_of(error);
  if (program.is_script) {
    const std::string file = query::d::named_file(text_, error.span.begin);
    const std::string before = file.empty() ? "" : fmt::format("\"{}\", ", file);
    const std::string line = error.line == 0 ? "" : fmt::format("{}line {}: ", before, error.line);
    return {ErrorCode::InvalidQuery, fmt::format("failed to compile script {}: {}{}{}{}",
                                                 program.name, tag, line, error.message, drawing)};
  }
  return {ErrorCode::InvalidQuery, fmt::format("invalid probe specifier {}: {}{}{}{}", program.name,
                                               tag, text_of(error.region), error.message, drawing)};
}

CompileOptions ScriptCompiler::options_of(const DtraceProgram& program) {
  CompileOptions options;
  options.extensions = &*extensions_;
  options.form = program.form;
  options.name = program.is_file ? program.text : "";
  options.arguments.push_back(program.is_file ? program.text : "dtrace");
  options.arguments.insert(options.arguments.end(), request_.arguments.begin(),
                           request_.arguments.end());
  options.target_pid = static_cast<uint64_t>(target_);
  for (const auto& [name, value] : request_.options) {
    const bool is_set = query::d::is_on(value);
    if (name == "defaultargs") options.default_arguments = is_set;
    if (name == "argref") options.allow_unused_arguments = is_set;
    if (name == "empty") options.allow_empty_files = is_set;
    if (name == "zdefs") options.allow_unmatched_probes = is_set;
  }
  if (request_.product != DtraceRequest::Product::Trace) options.allow_empty_files = true;
  return options;
}

// Of the command line, and of the programs so far; the last word counts.
bool ScriptCompiler::has_option(std::string_view name) const {
  bool is_set = false;
  for (const query::d::PragmaOption& option : program_.options) {
    if (option.name == name) is_set = query::d::is_on(option.value.value_or(""));
  }
  return is_set;
}

// The options that stand for flags of the preprocessor come behind the flags themselves.
Expected<std::string> ScriptCompiler::preprocessed(const std::string& text) const {
  query::d::PreprocessOptions options;
  options.arguments = request_.preprocessor_arguments;
  for (const auto& [name, value] : request_.options) {
    if (name == "cpppath") options.path = value;
    if (name == "cppargs") options.arguments.push_back(value);
    if (name == "cpphdrs") options.arguments.emplace_back("-H");
    if (name == "define") options.arguments.push_back("-D" + value);
    if (name == "undef") options.arguments.push_back("-U" + value);
    if (name == "incdir") options.arguments.push_back("-I" + value);
    if (name == "stdc")
      options.arguments.emplace_back(value == "s" ? "-traditional-cpp" : "-std=gnu99");
  }
  query::d::Preprocessed done = CLEW_TRY(query::d::preprocess(text, options));
  // -H's list, and warnings.
  (void)std::fwrite(done.messages.data(), 1, done.messages.size(), stderr);
  return std::move(done.text);
}

// What the text may use without declaring it: D's own library, once what -L adds to it.
Expected<void> ScriptCompiler::add_definitions(const std::string& text) {
  std::string all = text;
  std::vector<DLibrary> libraries;
  if (program_.clauses.empty() && clause_ends_.empty()) libraries = CLEW_TRY(user_libraries());
  for (const DLibrary& library : libraries)
    all += "\n" + library.text;
  if (!has_option("nolibs")) {
    auto library = query::d::parse_library(all, types_);
    if (!library) return tl::unexpected(error_of(library.error()));
    append(std::move(*library), program_);
  }
  for (const DLibrary& library : libraries) {
    CompileOptions options;
    options.name = library.path;
    options.allow_empty_files = true;
    auto parsed = query::d::parse(library.text, options, types_);
    if (!parsed) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("failed to compile library {}: line {}: {}", library.path,
                              parsed.error().line, parsed.error().message));
    }
    append(std::move(*parsed), program_);
  }
  return {};
}

// What a program or a library depends on.
bool ScriptCompiler::is_there(std::string_view kind, std::string_view name) {
  if (kind == "module") {
    return name == "vmlinux" || access(fmt::format("/sys/module/{}", name).c_str(), F_OK) == 0;
  }
  if (kind == "library") {
    const auto pieces = query::d::library_pieces();
    const bool is_own = std::any_of(pieces.begin(), pieces.end(), [name](const auto& piece) {
      return name == std::string(piece.name) + ".d";
    });
    return is_own || std::any_of(libraries_.begin(), libraries_.end(), [name](const auto& path) {
             return std::string_view(path).ends_with("/" + std::string(name));
           });
  }
  query::d::ProbeDescription any;
  any.provider = std::string(name);
  const auto matched = probes_.match(any);
  return kind != "provider" || (matched && !matched->empty());
}

Expected<std::vector<DLibrary>> ScriptCompiler::user_libraries() {
  std::vector<DLibrary> all;
  const auto has = [this](std::string_view kind, std::string_view name) {
    return is_there(kind, name);
  };
  for (const auto& [name, value] : request_.options) {
    if (name != "libdir") continue;
    std::vector<DLibrary> found = CLEW_TRY(read_libraries(value, has));
    for (const DLibrary& library : found)
      libraries_.push_back(library.path);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

// What is parsed of a program.
Expected<void> ScriptCompiler::take_text(const DtraceProgram& program) {
  CompiledProgram& compiled = compiled_.programs.emplace_back();
  compiled.name = program.text;
  compiled.is_script = program.is_file;
  options_ = options_of(program);
  std::string text = program.is_file ? CLEW_TRY(content_of(program)) : program.text;
  if (request_.preprocess || has_option("cpp")) text = CLEW_TRY(preprocessed(text));
  compiled.text = text;
  text_ = std::move(text);
  return add_definitions(text_);
}

Expected<void> ScriptCompiler::add(const DtraceProgram& program) {
  CLEW_TRY(take_text(program));
  auto parsed = query::d::parse(text_, options_, types_);
  if (!parsed) return tl::unexpected(error_of(parsed.error()));
  for (const query::d::Dependency& each : parsed->dependencies) {
    if (is_there(each.kind, each.name)) continue;
    return tl::unexpected(error_of({"D_PRAGMA_DEPEND",
                                    fmt::format("program requires {} {}", each.kind, each.name),
                                    each.line,
                                    {},
                                    {}}));
  }
  append(std::move(*parsed), program_);
  clause_ends_.push_back(program_.clauses.size());
  return {};
}

// All programs so far; an error is one of the last.
Expected<void> ScriptCompiler::check(bool is_last) {
  auto script = is_last ? query::d::check(program_, std::move(types_), probes_, options_)
                        : query::d::check(program_, types_, probes_, options_);
  if (!script) return tl::unexpected(error_of(script.error()));
  compiled_.script = std::move(*script);
  return {};
}

void ScriptCompiler::add_command_line_options() {
  for (const auto& [name, value] : request_.options) {
    program_.order.emplace_back(Program::Item::Option,
                                static_cast<uint32_t>(program_.options.size()));
    query::d::PragmaOption& option = program_.options.emplace_back();
    option.name = name;
    if (!value.empty()) option.value = value;
  }
}

// A glob over the providers of all processes is no wish to attach to each of them.
void ScriptCompiler::note_process(const query::d::ProbeDescription& description,
                                  const kernel::Probe& probe) {
  const bool is_glob = description.provider.find_first_of("*?[\\") != std::string::npos;
  if (probe.pid != 0 && !is_glob) compiled_.named_pids.insert(static_cast<pid_t>(probe.pid));
}

Expected<void> ScriptCompiler::enable() {
  std::map<uint32_t, std::vector<uint32_t>> clauses;
  size_t program = 0;
  for (uint32_t i = 0; i < compiled_.script.clauses.size(); ++i) {
    while (i >= clause_ends_[program])
      ++program;
    CompiledProgram& owner = compiled_.programs[program];
    owner.statements =
        query::d::least_stable(owner.statements, compiled_.script.clauses[i].stability);
    for (const auto& description : compiled_.script.clauses[i].probes) {
      for (const uint32_t id : CLEW_TRY(probes_.match(description))) {
        clauses[id].push_back(i);
        note_process(description, *catalogue_.find(id));
        ++owner.matched;
        const auto provider = stability_of(catalogue_, *catalogue_.find(id));
        owner.probes = query::d::least_stable(owner.probes, provider.probes);
      }
    }
  }
  for (auto& [id, of_probe] : clauses) {
    if (id == kernel::kErrorProbe) compiled_.error_clauses = of_probe;
    compiled_.enablings.push_back({*catalogue_.find(id), std::move(of_probe)});
  }
  return {};
}

Expected<void> ScriptCompiler::load_extensions() {
  extensions_ = CLEW_TRY(Extensions::load(
      request_.extensions, {.folder = request_.extension_folder}, {"D", query::d::is_d_function}));
  return {};
}

Expected<CompiledScript> ScriptCompiler::compile() {
  CLEW_TRY(load_extensions());
  add_command_line_options();
  for (size_t i = 0; i < request_.programs.size(); ++i) {
    CLEW_TRY(add(request_.programs[i]));
    CLEW_TRY(check(i + 1 == request_.programs.size()));
  }
  CLEW_TRY(enable());
  auto generated = plan::d::generate(compiled_.script, extensions_->all());
  if (!generated) return tl::unexpected(error_of(generated.error()));
  compiled_.generated = std::move(*generated);
  compiled_.generated.extensions.fuel = request_.extension_fuel;
  return std::move(compiled_);
}

Expected<Providers> ScriptCompiler::read_providers() {
  CLEW_TRY(load_extensions());
  add_command_line_options();
  Providers all;
  for (const DtraceProgram& program : request_.programs) {
    CLEW_TRY(take_text(program));
    auto parsed = query::d::parse_providers(text_, options_, types_);
    if (!parsed) return tl::unexpected(error_of(parsed.error()));
    std::move(parsed->begin(), parsed->end(), std::back_inserter(all.definitions));
    clause_ends_.push_back(0);
  }
  all.types = std::move(types_);
  return all;
}

}  // namespace

Expected<Providers> read_providers(const DtraceRequest& request, kernel::Catalogue& catalogue,
                                   query::d::TypeProvider* types) {
  return ScriptCompiler(request, catalogue, types, 0).read_providers();
}

Expected<CompiledScript> compile_script(const DtraceRequest& request, kernel::Catalogue& catalogue,
                                        query::d::TypeProvider* types, pid_t target) {
  return ScriptCompiler(request, catalogue, types, target).compile();
}

}  // namespace clew::engine
