/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %? is the width of a pointer, 16. */
BEGIN
{
	printf("[%?d] [%-?x] [%0?x]\n", 5, 255, 4096);
	exit(0);
}
/* output:
[               5] [ff              ] [0000000000001000]

*/
