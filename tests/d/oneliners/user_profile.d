/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
profile-99
/arg1 && execname == "bash"/
{
	@[ustack(10)] = count();
}
