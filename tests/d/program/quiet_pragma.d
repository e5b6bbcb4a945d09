/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5 and 6: the option in the program. */
/* flags: -x errtags */
#pragma D option quiet
BEGIN
{
	printf("quiet\n");
	exit(0);
}
/* output:
quiet

*/
