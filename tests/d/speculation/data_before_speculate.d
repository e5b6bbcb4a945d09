/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SPEC_DREC] */
BEGIN
{
	printf("x");
	speculate(1);
	exit(0);
}
