/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
io:::start
{
	@bytes[args[1]->dev_statname, execname] = quantize(args[0]->b_bcount);
}
