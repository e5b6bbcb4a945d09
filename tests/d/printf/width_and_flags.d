/* SPDX-License-Identifier: Apache-2.0 */
/* Width, zeros, left alignment and sign. */
BEGIN
{
	printf("[%5d] [%-5d] [%05d] [%+d] [% d]\n", 42, 42, 42, 42, 42);
	exit(0);
}
/* output:
[   42] [42   ] [00042] [+42] [ 42]

*/
