/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall::read:return
/execname != "dtrace"/
{
	@dist[execname] = quantize(arg0);
}
