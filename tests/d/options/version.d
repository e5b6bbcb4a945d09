/* SPDX-License-Identifier: Apache-2.0 */
/* Versions are numbers with dots. */
/* flags: -q -xversion=1.6 */
#pragma D option version=1.2.1
BEGIN
{
	printf("fine\n");
	exit(0);
}
/* output:
fine

*/
