// SPDX-License-Identifier: Apache-2.0
// A library that the victim loads when it is told to. Behind the first instruction is room for a
// jump.
__attribute__((noinline)) long plug(long value) {
  __asm__ volatile("" : : : "memory");
  return value + (value >> 3);
}

// The static probe `inline_plugin:::plugged`, which is passed when somebody listens to it.
__attribute__((section(".probes"), used)) volatile unsigned short plugged_semaphore;

__attribute__((noinline)) long plugged(long value) {
  if (plugged_semaphore == 0) return value;
  __asm__ volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt,\"?\",\"note\"\n"
      ".balign 4\n"
      ".4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b\n"
      ".8byte _.stapsdt.base\n"
      ".8byte plugged_semaphore\n"
      ".asciz \"inline_plugin\"\n"
      ".asciz \"plugged\"\n"
      ".asciz \"-8@%0\"\n"
      "994: .balign 4\n"
      ".popsection\n"
      ".ifndef _.stapsdt.base\n"
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
      ".weak _.stapsdt.base\n"
      ".hidden _.stapsdt.base\n"
      "_.stapsdt.base: .space 1\n"
      ".size _.stapsdt.base, 1\n"
      ".popsection\n"
      ".endif\n"
      :
      : "r"(value));
  return value;
}
