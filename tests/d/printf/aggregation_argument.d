/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31: an aggregation has no value. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_TYPE] */
BEGIN
{
	@a = count();
	printf("%d\n", @a);
	exit(0);
}
