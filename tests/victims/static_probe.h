// SPDX-License-Identifier: Apache-2.0
// A static probe as the macros of <sys/sdt.h> would write it: the assembler's text of a nop, and of
// the note that says where it is, which semaphore counts its listeners, and where its arguments
// are.
#pragma once

#define VICTIM_STATIC_PROBE(provider, name, semaphore, arguments) \
  VICTIM_STATIC_PROBE_AT("nop", provider, name, semaphore, arguments)

#define VICTIM_STATIC_PROBE_AT(place, provider, name, semaphore, arguments) \
  "990: " place                                                             \
  "\n"                                                                      \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n"                             \
  ".balign 4\n"                                                             \
  ".4byte 992f-991f, 994f-993f, 3\n"                                        \
  "991: .asciz \"stapsdt\"\n"                                               \
  "992: .balign 4\n"                                                        \
  "993: .8byte 990b\n"                                                      \
  ".8byte _.stapsdt.base\n"                                                 \
  ".8byte " semaphore                                                       \
  "\n"                                                                      \
  ".asciz \"" provider                                                      \
  "\"\n"                                                                    \
  ".asciz \"" name                                                          \
  "\"\n"                                                                    \
  ".asciz \"" arguments                                                     \
  "\"\n"                                                                    \
  "994: .balign 4\n"                                                        \
  ".popsection\n"                                                           \
  ".ifndef _.stapsdt.base\n"                                                \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"   \
  ".weak _.stapsdt.base\n"                                                  \
  ".hidden _.stapsdt.base\n"                                                \
  "_.stapsdt.base: .space 1\n"                                              \
  ".size _.stapsdt.base, 1\n"                                               \
  ".popsection\n"                                                           \
  ".endif\n"
