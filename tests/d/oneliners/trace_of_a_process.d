/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e -c /bin/true */
pid$target:::entry
{
	@[probemod, probefunc] = count();
}
