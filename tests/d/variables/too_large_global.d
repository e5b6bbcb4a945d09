/* SPDX-License-Identifier: Apache-2.0 */
/* Global variables have a limit, and a message. */
/* flags: -q -xerrtags -e */
/* status: 1 */
/* stderr: [D_NOMEM] global variables have 2147483648 bytes; 67108864 is the most */
char a[1 << 30];
char b[1 << 30];
BEGIN
{
	a[0] = 1;
	exit(0);
}
