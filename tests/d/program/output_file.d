/* SPDX-License-Identifier: Apache-2.0 */
/* -o sends the output elsewhere. */
/* flags: -q -o /dev/null */
BEGIN
{
	printf("not here\n");
	exit(0);
}
