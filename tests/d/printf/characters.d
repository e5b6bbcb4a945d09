/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %c. */
BEGIN
{
	x = 'y';
	printf("%c%c%c|%3c|%-3c|\n", 'x', x, 122, 'a', 'b');
	exit(0);
}
/* output:
xyz|  a|b  |

*/
