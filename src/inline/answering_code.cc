// SPDX-License-Identifier: Apache-2.0
#include "inline/answering_code.h"

#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "code/windows.h"

namespace clew::inline_ {

namespace {

// struct dl_phdr_info (link.h): addr 8, name 8, phdr 8, phnum 8, adds 8, subs 8, tls 16.
constexpr uint8_t kInfoBytes = 64;

class AnsweringWriter {
 public:
  AnsweringWriter(const code::Window& window, const AnsweringPlaces& places)
      : window_(window), places_(places) {}

  Expected<AnsweringCode> finding() {
    CLEW_TRY(begin());
    const size_t none = put_search();
    const size_t call = put_finding();
    return end(none, call);
  }

  Expected<AnsweringCode> listing() {
    CLEW_TRY(begin());
    const size_t none = put_search_of_asker();
    const Listing listing = put_listing();
    const size_t callback = result_.bytes.size();
    lead(listing.callback, callback);
    put_callback();
    return end(none, listing.call);
  }

 private:
  // What takes back a first instruction that stays in front of the jump, and that is done again.
  Expected<void> begin() {
    const code::Placement placement = {.destination = places_.code, .load_bias = places_.load_bias};
    patched_ = CLEW_TRY(code::relocate(window_, {}, placement, {}));
    head_ = patched_.boundaries.front().probe_offset;
    result_.bytes.assign(patched_.bytes.begin(), patched_.bytes.begin() + head_);
    return {};
  }

  // What stood at the window, where these two lead.
  Expected<AnsweringCode> end(size_t none, size_t call) {
    lead(none, result_.bytes.size());
    lead(call, result_.bytes.size());
    const code::Placement plain = {.destination = here() - head_, .load_bias = places_.load_bias};
    code::Relocated original = CLEW_TRY(code::relocate(window_, {}, plain, {}));
    result_.bytes.insert(result_.bytes.end(), original.bytes.begin() + head_, original.bytes.end());
    result_.window = {.window = window_,
                      .load_bias = places_.load_bias,
                      .patches = patched_.patches,
                      .copy = plain.destination,
                      .boundaries = std::move(original.boundaries)};
    return std::move(result_);
  }

  [[nodiscard]] uint64_t here() const { return places_.code + result_.bytes.size(); }
  void put(std::initializer_list<uint8_t> bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes);
  }
  // The end of a distance of 4 bytes that is led somewhere later.
  size_t put_open(std::initializer_list<uint8_t> opcode) {
    put(opcode);
    put({0, 0, 0, 0});
    return result_.bytes.size();
  }
  void lead(size_t end, size_t target) {
    const auto distance = static_cast<uint32_t>(target - end);
    std::memcpy(result_.bytes.data() + end - 4, &distance, sizeof(distance));
  }
  void put_address(std::initializer_list<uint8_t> opcode, uint64_t address) {
    lead(put_open(opcode), address - places_.code);
  }

  // rdi: the program counter, rsi: where the answer goes. Both stay; rax, rcx, rdx and the flags
  // are free in front of a function. Behind it rax is behind the answer that was found.
  size_t put_search() {
    put_address({0x48, 0x8d, 0x05}, places_.table);  // lea rax, [table]
    const size_t next = result_.bytes.size();
    put({0x48, 0x8b, 0x48, offsetof(Answer, size_bytes)});  // next: mov rcx, [rax + size]
    put({0x48, 0x85, 0xc9});                                // test rcx, rcx
    const size_t none = put_open({0x0f, 0x84});             // jz plain
    put({0x48, 0x89, 0xfa});                                // mov rdx, rdi
    put({0x48, 0x2b, 0x10});                                // sub rdx, [rax + begin]
    put({0x48, 0x05, sizeof(AnswerRow), 0, 0, 0});          // add rax, 152
    put({0x48, 0x39, 0xca});                                // cmp rdx, rcx
    lead(put_open({0x0f, 0x83}), next);                     // jae next
    return none;
  }

  // From behind its row.
  static constexpr uint32_t back(size_t field) {
    return static_cast<uint32_t>(field) - static_cast<uint32_t>(sizeof(AnswerRow));
  }
  void put_field(std::initializer_list<uint8_t> opcode, size_t field) {
    const size_t end = put_open(opcode);
    const uint32_t distance = back(field);
    std::memcpy(result_.bytes.data() + end - 4, &distance, sizeof(distance));
  }

  // struct dl_find_object (dlfcn.h): flags 8, map_start 8, map_end 8, link_map 8, eh_frame 8.
  size_t put_finding() {
    put({0x56});                                                  // push rsi
    put({0x50});                                                  // push rax
    put({0x48, 0x83, 0xec, 0x08});                                // sub rsp, 8
    put_field({0x48, 0x8b, 0xb8}, offsetof(Answer, original));    // mov rdi, [rax + original]
    const size_t call = put_open({0xe8});                         // call plain
    put({0x48, 0x83, 0xc4, 0x08});                                // add rsp, 8
    put({0x59});                                                  // pop rcx
    put({0x5e});                                                  // pop rsi
    put({0x85, 0xc0});                                            // test eax, eax
    const size_t unknown = put_open({0x0f, 0x85});                // jnz end
    put_field({0x48, 0x8b, 0x91}, offsetof(Answer, begin));       // mov rdx, [rcx + begin]
    put({0x48, 0x89, 0x56, 8});                                   // mov [rsi + map_start], rdx
    put_field({0x48, 0x03, 0x91}, offsetof(Answer, size_bytes));  // add rdx, [rcx + size]
    put({0x48, 0x89, 0x56, 16});                                  // mov [rsi + map_end], rdx
    put_field({0x48, 0x8b, 0x91}, offsetof(Answer, header));      // mov rdx, [rcx + header]
    put({0x48, 0x89, 0x56, 32});                                  // mov [rsi + eh_frame], rdx
    lead(unknown, result_.bytes.size());
    put({0xc3});  // end: ret
    return call;
  }

  // rdi: the callback, rsi: its data. Both stay; rax, rcx, rdx, r8 and the flags are free.
  size_t put_search_of_asker() {
    put({0x48, 0x8b, 0x04, 0x24});                    // mov rax, [rsp]
    put_address({0x48, 0x8d, 0x0d}, places_.askers);  // lea rcx, [askers]
    const size_t next = result_.bytes.size();
    put({0x48, 0x8b, 0x51, offsetof(Asker, size_bytes)});  // next: mov rdx, [rcx + size]
    put({0x48, 0x85, 0xd2});                               // test rdx, rdx
    const size_t none = put_open({0x0f, 0x84});            // jz plain
    put({0x49, 0x89, 0xc0});                               // mov r8, rax
    put({0x4c, 0x2b, 0x01});                               // sub r8, [rcx + begin]
    put({0x48, 0x83, 0xc1, sizeof(Asker)});                // add rcx, 16
    put({0x49, 0x39, 0xd0});                               // cmp r8, rdx
    lead(put_open({0x0f, 0x83}), next);                    // jae next
    return none;
  }

  struct Listing {
    size_t callback = 0;
    size_t call = 0;
  };
  // On the stack, for the callback: whether the copies were told 8, callback 8, data 8.
  Listing put_listing() {
    Listing open;
    put({0x56});                                   // push rsi
    put({0x57});                                   // push rdi
    put({0x6a, 0x00});                             // push 0
    open.callback = put_open({0x48, 0x8d, 0x3d});  // lea rdi, [callback]
    put({0x48, 0x89, 0xe6});                       // mov rsi, rsp
    open.call = put_open({0xe8});                  // call plain
    put({0x48, 0x83, 0xc4, 0x18});                 // add rsp, 24
    put({0xc3});                                   // ret
    return open;
  }

  // rdi: the object, rsi: how many bytes of it there are, rdx: what put_listing() has pushed.
  void put_callback() {
    put({0x53, 0x41, 0x54, 0x41, 0x55});  // push rbx; push r12; push r13
    put({0x48, 0x89, 0xd3});              // mov rbx, rdx
    put({0x49, 0x89, 0xfc});              // mov r12, rdi
    put({0x49, 0x89, 0xf5});              // mov r13, rsi
    put_call();
    put({0x85, 0xc0});                              // test eax, eax
    const size_t ends = put_open({0x0f, 0x85});     // jnz end
    put({0x48, 0x83, 0x3b, 0x00});                  // cmp qword [rbx], 0
    const size_t told = put_open({0x0f, 0x85});     // jne end
    put({0x48, 0xc7, 0x03, 1, 0, 0, 0});            // mov qword [rbx], 1
    put({0x49, 0x83, 0xfd, kInfoBytes});            // cmp r13, 64
    const size_t strange = put_open({0x0f, 0x82});  // jb end
    put_objects();
    for (const size_t end : {ends, told, strange})
      lead(end, result_.bytes.size());
    put({0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3});  // end: pop r13; pop r12; pop rbx; ret
    lead(name_, result_.bytes.size());
    constexpr std::string_view kName = "[clew]";  // No file's.
    result_.bytes.insert(result_.bytes.end(), kName.begin(), kName.end());
    put({0});
  }

  // The asker's callback, of what is in rdi and rsi.
  void put_call() {
    put({0x48, 0x8b, 0x53, 0x10});  // mov rdx, [rbx + data]
    put({0xff, 0x53, 0x08});        // call [rbx + callback]
  }

  // How often modules have come and gone is the loader's: copies only come, and what an unwinder
  // has found in some stays right.
  void put_objects() {
    put({0x48, 0x83, 0xec, kInfoBytes});             // sub rsp, 64
    put({0x31, 0xc0});                               // xor eax, eax
    put({0x49, 0x8b, 0x4c, 0x24, 32});               // mov rcx, [r12 + adds]
    put({0x48, 0x89, 0x4c, 0x24, 32});               // mov [rsp + adds], rcx
    put({0x49, 0x8b, 0x4c, 0x24, 40});               // mov rcx, [r12 + subs]
    put({0x48, 0x89, 0x4c, 0x24, 40});               // mov [rsp + subs], rcx
    put({0x48, 0x89, 0x04, 0x24});                   // mov [rsp + addr], rax
    name_ = put_open({0x48, 0x8d, 0x0d});            // lea rcx, [name]
    put({0x48, 0x89, 0x4c, 0x24, 8});                // mov [rsp + name], rcx
    put({0x48, 0xc7, 0x44, 0x24, 24, 2, 0, 0, 0});   // mov qword [rsp + phnum], 2
    put({0x48, 0x89, 0x44, 0x24, 48});               // mov [rsp + tls], rax
    put({0x48, 0x89, 0x44, 0x24, 56});               // mov [rsp + tls + 8], rax
    put_address({0x4c, 0x8d, 0x25}, places_.table);  // lea r12, [table]
    const size_t next = result_.bytes.size();
    put({0x49, 0x83, 0x7c, 0x24, offsetof(Answer, size_bytes), 0});  // next: cmp [r12 + size], 0
    const size_t done = put_open({0x0f, 0x84});                      // je done
    put({0x49, 0x8d, 0x4c, 0x24, offsetof(AnswerRow, code)});        // lea rcx, [r12 + code]
    put({0x48, 0x89, 0x4c, 0x24, 16});                               // mov [rsp + phdr], rcx
    put({0x48, 0x89, 0xe7});                                         // mov rdi, rsp
    put({0xbe, kInfoBytes, 0, 0, 0});                                // mov esi, 64
    put_call();
    put({0x49, 0x81, 0xc4, sizeof(AnswerRow), 0, 0, 0});  // add r12, 152
    put({0x85, 0xc0});                                    // test eax, eax
    lead(put_open({0x0f, 0x84}), next);                   // jz next
    lead(done, result_.bytes.size());
    put({0x48, 0x83, 0xc4, kInfoBytes});  // done: add rsp, 64
  }

  const code::Window& window_;
  const AnsweringPlaces& places_;
  code::Relocated patched_;
  uint32_t head_ = 0;
  size_t name_ = 0;
  AnsweringCode result_;
};

std::optional<code::Window> find_window(const code::ModuleCode& code, uint64_t function) {
  const code::Request request = {.kind = code::RequestKind::Entry, .address = function};
  code::Plan plan = code::plan_windows(code, std::span(&request, 1));
  if (plan.windows.size() != 1) return std::nullopt;
  code::Window& window = plan.windows.front();
  if (window.window_class == code::WindowClass::BothWays) return std::nullopt;
  return std::move(window);
}

tl::unexpected<Error> takes_no_jump(std::string_view function) {
  return fail(ErrorCode::Refused,
              std::string(function) + "() in the process's C library takes no jump [unwinding]");
}

}  // namespace

AnswerRow row_of(const Answer& answer) {
  AnswerRow row = {.answer = answer};
  row.code = {.p_type = PT_LOAD,
              .p_flags = PF_R | PF_X,
              .p_offset = 0,
              .p_vaddr = answer.begin,
              .p_paddr = answer.begin,
              .p_filesz = answer.size_bytes,
              .p_memsz = answer.size_bytes,
              .p_align = 1};
  row.frames = row.code;
  row.frames.p_type = PT_GNU_EH_FRAME;
  row.frames.p_flags = PF_R;
  row.frames.p_vaddr = row.frames.p_paddr = answer.header;
  row.frames.p_filesz = row.frames.p_memsz = answer.header_bytes;
  return row;
}

Expected<AnsweringCode> make_finding_code(const code::ModuleCode& code,
                                          const AnsweringPlaces& places) {
  const auto window = find_window(code, places.function);
  if (!window) return takes_no_jump("_dl_find_object");
  return AnsweringWriter(*window, places).finding();
}

Expected<AnsweringCode> make_listing_code(const code::ModuleCode& code,
                                          const AnsweringPlaces& places) {
  const auto window = find_window(code, places.function);
  if (!window) return takes_no_jump("dl_iterate_phdr");
  return AnsweringWriter(*window, places).listing();
}

}  // namespace clew::inline_
