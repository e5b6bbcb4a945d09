/* SPDX-License-Identifier: Apache-2.0 */
/* stack() in BEGIN begins where the tracer asked the kernel, not in the program itself. */
BEGIN
{
	func(caller);
	exit(0);
}
/* output:
  vmlinux`__x64_sys_bpf                             
*/
