/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
lockstat:::adaptive-block
{
	@[stack(5)] = sum(arg1);
}
