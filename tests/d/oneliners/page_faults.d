/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
vminfo:::as_fault
{
	@mem[execname] = sum(arg0);
}
