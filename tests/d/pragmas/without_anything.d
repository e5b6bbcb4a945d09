/* SPDX-License-Identifier: Apache-2.0 */
/* Empty pragmas, and those of others, mean nothing. */
#pragma
#pragma D
#pragma once
BEGIN
{
	trace("begun");
	exit(0);
}
/* output:
begun
*/
