/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter of an inline that nobody reads needs no name. */
inline int twice[int] = 2;
BEGIN
{
	trace(twice[5]);
	exit(0);
}
/* output:
2
*/
