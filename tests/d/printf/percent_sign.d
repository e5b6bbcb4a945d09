/* SPDX-License-Identifier: Apache-2.0 */
/* %% is a percent sign. */
BEGIN
{
	printf("100%% %d%%\n", 5);
	exit(0);
}
/* output:
100% 5%

*/
