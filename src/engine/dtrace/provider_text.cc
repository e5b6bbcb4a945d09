// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/provider_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>

namespace clew::engine {

using query::d::ProviderDefinition;
using query::d::TypeId;
using query::d::TypeParameter;
using query::d::TypeTable;
using Probe = ProviderDefinition::Probe;

namespace {

constexpr size_t kArgumentsInRegisters = 6;  // System V ABI, 3.2.3

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// transaction__start -> TRANSACTION_START
std::string macro_name(const std::string& provider, const std::string& name) {
  std::string macro = provider + "_" + replaced(replaced(name, "-", "_"), "__", "_");
  std::transform(macro.begin(), macro.end(), macro.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return macro;
}

std::string note_name(const Probe& probe) {
  return replaced(probe.name, "-", "__");
}

std::string counter_name(const ProviderDefinition& provider, const Probe& probe) {
  return fmt::format("{}_{}_semaphore", provider.name, note_name(probe));
}

// --- types ---------------------------------------------------------------------------------------

// How an argument is passed: a pointer is a word, and so is what has no size.
struct Passed {
  uint32_t size_bytes = 8;
  bool is_signed = false;

  [[nodiscard]] std::string prefix() const {
    return fmt::format("{}{}@", is_signed ? "-" : "", size_bytes);
  }
};

Passed passed(const TypeTable& types, TypeId type) {
  if (!types.is_integer(type)) return {};
  return {types.size_of(type), types.is_signed(type)};
}

std::string_view c_type(const Passed& argument) {
  switch (argument.size_bytes) {
    case 1:
      return argument.is_signed ? "signed char" : "unsigned char";
    case 2:
      return argument.is_signed ? "short" : "unsigned short";
    case 4:
      return argument.is_signed ? "int" : "unsigned int";
    default:
      return argument.is_signed ? "long" : "unsigned long";
  }
}

// Without the file's own names: scripts have not read it. Those that D knows stay, and records.
TypeId known_to_scripts(TypeTable& types, TypeId type) {
  static const TypeTable kOfEveryScript;
  const query::d::Type& here = types.at(type);
  const TypeId target = here.target;
  if (here.kind == query::d::TypeKind::Pointer)
    return types.pointer_to(known_to_scripts(types, target));
  const bool is_plain = types.is_integer(type) || types.is_pointer(type);
  const bool is_known = kOfEveryScript.find_base(here.name) != query::d::kNoType;
  if (here.kind != query::d::TypeKind::Typedef || is_known || !is_plain) return type;
  return known_to_scripts(types, target);
}

std::string type_text(TypeTable& types, TypeId type) {
  return types.name_of(known_to_scripts(types, type));
}

// Which of the probe's own arguments a translated one is made of: that of its name, else that of
// its place.
size_t mapping_of(const Probe& probe, size_t translated) {
  const std::string& name = probe.translated[translated].name;
  for (size_t i = 0; i < probe.native.size() && !name.empty(); ++i) {
    if (probe.native[i].name == name) return i;
  }
  return translated;
}

// --- lines of assembly ---------------------------------------------------------------------------

using Lines = std::vector<std::string>;

void add_string(Lines& lines, std::string_view text) {
  lines.push_back(fmt::format(".asciz \"{}\"", text));
}

// Those of target/usdt.h.
void begin_note(Lines& lines, int type) {
  lines.insert(lines.end(), {".balign 4", fmt::format(".4byte 992f-991f, 994f-993f, {}", type),
                             "991: .asciz \"clewdt\"", "992: .balign 4", "993:"});
}

void end_note(Lines& lines) {
  lines.emplace_back("994: .balign 4");
}

// Type 1.
void add_types(Lines& lines, const ProviderDefinition& provider, const Probe& probe,
               TypeTable& types) {
  begin_note(lines, 1);
  add_string(lines, provider.name);
  add_string(lines, note_name(probe));
  const size_t count = probe.is_translated ? probe.translated.size() : probe.native.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t from = probe.is_translated ? mapping_of(probe, i) : i;
    if (from >= probe.native.size()) continue;
    const TypeId native = probe.native[from].type;
    add_string(lines, std::to_string(from));
    add_string(lines, type_text(types, native));
    add_string(lines, type_text(types, probe.is_translated ? probe.translated[i].type : native));
  }
  end_note(lines);
}

// Type 2.
void add_stability(Lines& lines, const ProviderDefinition& provider) {
  if (!provider.stability) return;
  begin_note(lines, 2);
  add_string(lines, provider.name);
  add_string(lines, text_of(provider.stability->probes));
  add_string(lines, text_of(provider.stability->arguments));
  end_note(lines);
}

void add_counter(Lines& lines, const std::string& name) {
  lines.push_back(fmt::format(".pushsection .probes,\"awG\",@progbits,.{},comdat", name));
  lines.push_back(fmt::format(".weak {}", name));
  lines.push_back(fmt::format(".hidden {}", name));
  lines.push_back(fmt::format(".type {}, @object", name));
  lines.push_back(fmt::format(".size {}, 2", name));
  lines.push_back(".balign 2");
  lines.push_back(fmt::format("{}: .2byte 0", name));
  lines.push_back(".popsection");
}

Lines shared_lines(const ProviderDefinition& provider, TypeTable& types) {
  Lines lines;
  lines.push_back(
      fmt::format(".pushsection .note.clewdt,\"G\",@note,.clewdt.{},comdat", provider.name));
  for (const Probe& probe : provider.probes)
    add_types(lines, provider, probe, types);
  add_stability(lines, provider);
  lines.emplace_back(".popsection");
  for (const Probe& probe : provider.probes)
    add_counter(lines, counter_name(provider, probe));
  return lines;
}

// One for each provider's header and the object. The nop has five bytes: room for a jump.
constexpr std::string_view kBeforeNames =
    "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
    ".pushsection .note.stapsdt,\"?\",\"note\"\n"
    ".balign 4\n"
    ".4byte 992f-991f, 994f-993f, 3\n"
    "991: .asciz \"stapsdt\"\n"
    "992: .balign 4\n"
    "993: .8byte 990b\n"
    ".8byte _.stapsdt.base\n";
constexpr std::string_view kBehindNames =
    "994: .balign 4\n"
    ".popsection\n"
    ".ifndef _.stapsdt.base\n"
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
    ".weak _.stapsdt.base\n"
    ".hidden _.stapsdt.base\n"
    "_.stapsdt.base: .space 1\n"
    ".size _.stapsdt.base, 1\n"
    ".popsection\n"
    ".endif\n";

// --- C -------------------------------------------------------------------------------------------

// Each line of assembly as a string of C; all but the last of a macro end with a backslash.
std::string quoted(std::string_view lines, std::string_view line_end) {
  std::string result;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    result += fmt::format("\t\"{}\\n\"{}\n", replaced(std::string(line), "\"", "\\\""), line_end);
  }
  return result;
}

std::string note_macro() {
  return "#ifndef _CLEW_SDT\n#define _CLEW_SDT(provider, name, counter, arguments) \\\n" +
         quoted(kBeforeNames, " \\") +
         "\t\".8byte \" counter \"\\n\" \\\n"
         "\t\".asciz \\\"\" provider \"\\\"\\n\" \\\n"
         "\t\".asciz \\\"\" name \"\\\"\\n\" \\\n"
         "\t\".asciz \\\"\" arguments \"\\\"\\n\" \\\n" +
         quoted(kBehindNames, " \\") + "\t\"\"\n#endif\n\n";
}

std::string parameters_of(const Probe& probe) {
  std::string result;
  for (size_t i = 0; i < probe.native.size(); ++i)
    result += fmt::format("{}arg{}", i == 0 ? "" : ", ", i);
  return result;
}

// A register or a constant: the address of a variable would need the file's symbols. What they
// point to is read at the probe, so it must be in memory by then ("memory"), as at a call.
std::string probe_macro(const ProviderDefinition& provider, const Probe& probe,
                        const TypeTable& types) {
  std::string places;
  std::string operands;
  for (size_t i = 0; i < probe.native.size(); ++i) {
    const Passed argument = passed(types, probe.native[i].type);
    places += fmt::format("{}{}%{}", i == 0 ? "" : " ", argument.prefix(), i);
    operands += fmt::format("{}\"nr\"(({})(arg{}))", i == 0 ? "" : ", ", c_type(argument), i);
  }
  return fmt::format(
      "#define\t{}({}) \\\n\t__extension__ ({{ __asm__ __volatile__ (_CLEW_SDT(\"{}\", \"{}\", \\\n"
      "\t\"{}\", \"{}\") : : {} : \"memory\"); }})\n",
      macro_name(provider.name, probe.name), parameters_of(probe), provider.name, note_name(probe),
      counter_name(provider, probe), places, operands);
}

std::string enabled_macros(const ProviderDefinition& provider, TypeTable& types) {
  std::string text;
  for (const Probe& probe : provider.probes) {
    const std::string counter = counter_name(provider, probe);
    text += probe_macro(provider, probe, types);
    text += fmt::format("#define\t{}_ENABLED() \\\n\t(__builtin_expect({}, 0) != 0)\n",
                        macro_name(provider.name, probe.name), counter);
    text += fmt::format(
        "extern volatile unsigned short {}\n\t__attribute__((__visibility__(\"hidden\")));\n",
        counter);
  }
  std::string lines;
  for (const std::string& line : shared_lines(provider, types))
    lines += line + "\n";
  return text + "__asm__(\n" + quoted(lines, "") + ");\n\n";
}

std::string disabled_macros(const ProviderDefinition& provider) {
  std::string text;
  for (const Probe& probe : provider.probes) {
    const std::string macro = macro_name(provider.name, probe.name);
    text += fmt::format("#define\t{}({}) \\\n\t((void)0)\n", macro, parameters_of(probe));
    text += fmt::format("#define\t{}_ENABLED() \\\n\t(0)\n", macro);
  }
  return text + "\n";
}

std::string guard_of(std::string_view file_name) {
  std::string guard = "_";
  for (const char c : file_name.substr(file_name.rfind('/') + 1)) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return guard;
}

// --- functions of Solaris' kind ------------------------------------------------------------------

std::string register_place(size_t index, uint32_t size_bytes) {
  constexpr std::array<std::array<std::string_view, 4>, kArgumentsInRegisters> kNames = {
      {{"dil", "di", "edi", "rdi"},
       {"sil", "si", "esi", "rsi"},
       {"dl", "dx", "edx", "rdx"},
       {"cl", "cx", "ecx", "rcx"},
       {"r8b", "r8w", "r8d", "r8"},
       {"r9b", "r9w", "r9d", "r9"}}};
  const size_t width = size_bytes == 1 ? 0 : size_bytes == 2 ? 1 : size_bytes == 4 ? 2 : 3;
  return fmt::format("%{}", kNames[index][width]);
}

// Those on the stack are behind the return address.
std::string places_in_function(const Probe& probe, const TypeTable& types) {
  std::string places;
  for (size_t i = 0; i < probe.native.size(); ++i) {
    const Passed argument = passed(types, probe.native[i].type);
    const std::string place = i < kArgumentsInRegisters
                                  ? register_place(i, argument.size_bytes)
                                  : fmt::format("{}(%rsp)", 8 + 8 * (i - kArgumentsInRegisters));
    places += (i == 0 ? "" : " ") + argument.prefix() + place;
  }
  return places;
}

std::string function(const std::string& name, const std::string& body) {
  return fmt::format(
      ".text\n.weak {0}\n.hidden {0}\n.type {0}, @function\n{0}:\n.cfi_startproc\nendbr64\n{1}ret\n"
      ".cfi_endproc\n.size {0}, .-{0}\n",
      name, body);
}

std::string called_function(const ProviderDefinition& provider, const Probe& probe,
                            const TypeTable& types, bool asks) {
  const std::string counter = counter_name(provider, probe);
  const std::string name =
      fmt::format("__dtrace{}_{}___{}", asks ? "enabled" : "", provider.name, note_name(probe));
  if (asks) return function(name, fmt::format("movzwl {}(%rip), %eax\n", counter));
  return function(name, fmt::format("{}.8byte {}\n.asciz \"{}\"\n.asciz \"{}\"\n.asciz \"{}\"\n{}",
                                    kBeforeNames, counter, provider.name, note_name(probe),
                                    places_in_function(probe, types), kBehindNames));
}

// Nothing: no provider has it.
std::string function_named(Definitions providers, const TypeTable& types, std::string_view name) {
  for (const ProviderDefinition& provider : providers) {
    for (const Probe& probe : provider.probes) {
      const std::string end = fmt::format("_{}___{}", provider.name, note_name(probe));
      if (name == "__dtrace" + end) return called_function(provider, probe, types, false);
      if (name == "__dtraceenabled" + end) return called_function(provider, probe, types, true);
    }
  }
  return "";
}

}  // namespace

std::string provider_header(Definitions providers, TypeTable& types, std::string_view file_name) {
  const std::string guard = guard_of(file_name);
  std::string text = "/*\n * Generated by dtrace(1).\n */\n\n";
  text += fmt::format("#ifndef\t{0}\n#define\t{0}\n\n", guard);
  text += "#ifdef\t__cplusplus\nextern \"C\" {\n#endif\n\n";
  text += "#ifndef\t_DTRACE_VERSION\n#define\t_DTRACE_VERSION 1\n#endif\n\n";
  text += "#if _DTRACE_VERSION\n\n" + note_macro();
  for (const ProviderDefinition& provider : providers)
    text += enabled_macros(provider, types);
  text += "#else\n\n";
  for (const ProviderDefinition& provider : providers)
    text += disabled_macros(provider);
  text += "#endif\n\n#ifdef\t__cplusplus\n}\n#endif\n\n";
  return text + fmt::format("#endif\t/* {} */\n", guard);
}

Expected<std::string> provider_assembly(Definitions providers, TypeTable& types,
                                        std::string_view called) {
  std::string text;
  for (const ProviderDefinition& provider : providers) {
    for (const std::string& line : shared_lines(provider, types))
      text += line + "\n";
  }
  while (!called.empty()) {
    const std::string_view name = called.substr(0, called.find('\n'));
    called.remove_prefix(std::min(name.size() + 1, called.size()));
    if (name.empty()) continue;
    const std::string code = function_named(providers, types, name);
    if (code.empty()) {
      return fail(ErrorCode::NotFound, fmt::format("no provider describes the probe {}", name));
    }
    text += code;
  }
  return text + ".section .note.GNU-stack,\"\",@progbits\n";
}

}  // namespace clew::engine
