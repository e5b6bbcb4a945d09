/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: strings of 1000 bytes. */
/* flags: -q -xstrsize=1k */
BEGIN
{
	a = "0123456789";
	b = strjoin(strjoin(a, a), strjoin(a, a));
	c = strjoin(strjoin(b, b), strjoin(b, b));
	d = strjoin(strjoin(c, c), c);
	printf("%d %s\n", strlen(d), substr(d, 475));
	exit(0);
}
/* output:
480 56789

*/
